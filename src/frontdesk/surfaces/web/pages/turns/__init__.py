"""Turns: what did the agents do, and what are they doing?"""
