"""How files get onto this machine: over HTTP(S), through apt or through pip, each checked and never trusted."""
