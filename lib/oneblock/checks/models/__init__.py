"""Checks of any classifier: ``diagnose_model(model, V=1000)`` runs them all."""
