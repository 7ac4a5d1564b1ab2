module.exports = {
  testEnvironment: 'jsdom',
  roots: ['<rootDir>/test'],
  transform: {},
  testTimeout: 10000,
  reporters: ['default', ['jest-junit', { outputName: 'junit.xml', titleTemplate: '{classname} > {title}' }]],
};
