// ---- start
setTheme(prefersDark.matches);
recall();
