// Waiting for the gateway after it said that it ends, or that the sign-in has. A page that loads itself again while nobody
// listens would be the browser's own page of an error, which never comes back.

let waiting = false;

export async function comeBack(address) {
  if (waiting) return;
  waiting = true;
  for (;;) {
    await new Promise((done) => setTimeout(done, 700));
    try {
      await fetch(address, { method: "HEAD", headers: { Accept: "application/json" } });
      return location.reload();
    } catch { /* nobody listens yet */ }
  }
}
