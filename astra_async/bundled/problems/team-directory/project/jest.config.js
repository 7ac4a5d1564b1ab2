module.exports = {
  preset: 'jest-preset-angular',
  roots: ['<rootDir>/src'],
  setupFilesAfterEnv: ['<rootDir>/setup-jest.ts'],
  transform: {
    '^.+\\.(ts|js|mjs|html|svg)$': [
      '<rootDir>/jest.transform.js',
      { tsconfig: '<rootDir>/tsconfig.json', stringifyContentPathRegex: '\\.(html|svg)$' },
    ],
  },
  testTimeout: 10000,
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  reporters: ['default', ['jest-junit', { outputName: 'junit.xml', titleTemplate: '{classname} > {title}' }]],
};
