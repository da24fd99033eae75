"""How explicit statements about a user are read without a model, English and Chinese."""
