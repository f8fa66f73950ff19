"""What an editor does for its agent: files, terminals, questions to the person."""
