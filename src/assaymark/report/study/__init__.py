"""The pages of a study."""
