//! Values, types, conversions, operators and built-in functions.
