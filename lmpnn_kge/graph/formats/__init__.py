"""Readers and writers of the folders that hold a knowledge graph."""
