"""The tables and figures of papers, measured on this machine: a module each, and what several of them share."""
