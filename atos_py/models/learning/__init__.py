"""Learning on graphs: algorithms of vectors of numbers on vertices and edges."""
