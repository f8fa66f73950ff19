"""The doors of logins: the page where a person allows a client, and the tokens that it gets for that."""
