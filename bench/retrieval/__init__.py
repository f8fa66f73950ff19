"""Measures how well tools are found, before and after some use, how fast, and in how much memory."""
