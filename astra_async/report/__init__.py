"""From result lines to conclusions: tables, CSV files, plots and one HTML page."""
