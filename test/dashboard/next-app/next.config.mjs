// Holdfast opens a database and starts a thread from its own files: Next must load it from node_modules, not bundle it.
export default {
  serverExternalPackages: ["holdfast"],
  turbopack: { root: import.meta.dirname },
};
