"""What an agent at work in somebody's folder needs: files and commands, leave to use them, sessions, visible memory."""
