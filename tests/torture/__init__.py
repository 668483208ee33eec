"""`make torture`: campaigns of hostile inputs, each case in a process with limits."""
