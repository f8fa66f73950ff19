"""Servers that are programs: each a child process of ours, spoken with in lines of JSON."""
