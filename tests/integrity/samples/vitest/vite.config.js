export default { test: { globals: true, environment: 'jsdom' } };
