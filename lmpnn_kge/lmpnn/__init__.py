"""The paper: the plan of messages for a query, the network, its loss and its batches."""
