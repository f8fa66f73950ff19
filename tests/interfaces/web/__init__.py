"""The pages, in process."""
