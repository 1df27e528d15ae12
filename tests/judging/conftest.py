"""Its presence makes `judged_records` importable from the folders below."""
