"""What joins the library to other products."""
