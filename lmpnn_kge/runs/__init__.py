"""What a user does: find the inputs, train, pretrain, open a run, evaluate, ask."""
