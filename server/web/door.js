// The sign-in page: somebody who is signed in already goes on to the console.
// The path is kept per origin, port included; it is worth nothing without the cookie.

const query = new URLSearchParams(location.search);
try {
  if (query.has("out")) localStorage.removeItem("toolward.path");
  const path = localStorage.getItem("toolward.path") ?? "";
  if (location.pathname === "/" && /^\/c\/[a-z0-9]{16}$/.test(path)) location.replace(path + "/");
} catch { /* without storage the person signs in again */ }
