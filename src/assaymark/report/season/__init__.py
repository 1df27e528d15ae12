"""The site of a season."""
