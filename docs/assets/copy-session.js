/* Copies a session as code that can be pasted: without its prompts and without what it printed. */
document.addEventListener("copy", (event) => {
  const field = document.activeElement;
  const text = field && "value" in field && field.value ? field.value : String(document.getSelection());
  if (!text.startsWith(">>> ")) return;
  const lines = text.split("\n").filter((line) => /^(>>>|\.\.\.)( |$)/.test(line));
  const ends = (at) => at && lines[at].startsWith(">>>") && lines[at - 1].startsWith("..."); // a block, for the prompt
  const code = lines.map((line, at) => (ends(at) ? "\n" : "") + line.slice(4)).join("\n") + "\n";
  event.clipboardData.setData("text/plain", code);
  event.preventDefault();
});
