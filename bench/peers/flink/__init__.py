"""The programs against the API that PyFlink and Penstock share: one text for both."""
