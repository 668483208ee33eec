"""Knowledge graphs: their names, file formats, splits and exact answers. No torch."""
