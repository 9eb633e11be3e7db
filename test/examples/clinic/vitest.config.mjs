// Vitest looks for one in the folders above, too: in a checkout of Skua it would find that of all its tests.
export default { test: { exclude: ['dist/**', 'node_modules/**'] } };
