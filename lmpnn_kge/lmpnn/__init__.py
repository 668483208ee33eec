"""The paper: which message goes where, the network, its loss and its batches."""
