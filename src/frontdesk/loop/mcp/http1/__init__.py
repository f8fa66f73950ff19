"""A small HTTP/1.1 client for the one thing done here thousands of times a minute: post a frame, read the answer."""
