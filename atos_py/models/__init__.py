"""What is built from the rest of the package and imported by nothing but the command line, when it is first used."""
