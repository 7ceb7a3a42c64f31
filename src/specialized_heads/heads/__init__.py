"""What heads do: relevance, confidence and the functions of sections 4 and 5."""
