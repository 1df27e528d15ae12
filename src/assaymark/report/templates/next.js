// How long it is until a time that is ahead.
for (const t of all("time")) {
  let h = (new Date(t.dateTime) - new Date) / 36e5 | 0;
  if (h > 0) t.append(" (in " + h + " h)");
}
