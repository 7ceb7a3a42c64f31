"""Text from Debian packages: apt, .deb archives, message catalogues, manuals and package descriptions."""
