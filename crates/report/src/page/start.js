// ---- start
// Figures that show the whole run whatever is chosen say so then.
for (const figure of document.querySelectorAll("figure:not(.live):not(:has(.live))")) figure.classList.add("whole");
setTheme(prefersDark.matches);
recall();
