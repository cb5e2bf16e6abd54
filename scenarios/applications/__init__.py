"""Ready-made applications, each in one short module that a user can copy."""
