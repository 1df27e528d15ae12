"""What each track does: a study of a judge, a benchmark and a season, from the plan to the numbers of its pages."""
