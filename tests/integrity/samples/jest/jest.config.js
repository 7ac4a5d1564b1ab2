module.exports = {
  projects: [
    { displayName: 'js', testMatch: ['**/*.test.js'] },
    { displayName: 'ts', testMatch: ['**/*.test.ts'], transform: { '\\.ts$': ['ts-jest', { tsconfig: 'tsconfig.json' }] } },
  ],
};
