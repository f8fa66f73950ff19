"""Has what was taken in found again."""
