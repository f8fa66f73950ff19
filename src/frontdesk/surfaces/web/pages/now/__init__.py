"""Now: is it healthy?"""
