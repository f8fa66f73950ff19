"""People: what is kept of somebody?"""
