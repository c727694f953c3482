// Holdfast opens a database and starts a thread from its own files: Next must load it from node_modules, not bundle it.
export default {
  serverExternalPackages: ["holdfast"],
  // The test links Next into the app's node_modules; Turbopack follows no link that leaves its root.
  turbopack: { root: "/" },
};
