"""What is done with a conversation as a whole: copied, deleted, taken back by some turns."""
