module.exports = {
  preset: 'jest-preset-angular',
  roots: ['<rootDir>/src'],
  setupFilesAfterEnv: ['<rootDir>/setup-jest.ts'],
  cacheDirectory: '<rootDir>/node_modules/.cache/jest',
  reporters: ['default', ['jest-junit', { outputName: 'junit.xml', titleTemplate: '{classname} > {title}' }]],
};
