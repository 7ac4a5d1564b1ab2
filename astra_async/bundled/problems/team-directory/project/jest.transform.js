const angular = require('jest-preset-angular').default;
const ts = require('typescript');

/** Compiles as jest-preset-angular does, and refuses syntax errors, which that one mends silently. */
module.exports = {
  createTransformer(config) {
    const transformer = angular.createTransformer(config);
    const compile = transformer.process.bind(transformer);
    transformer.process = (text, path, options) => {
      if (path.endsWith('.ts')) refuseSyntaxErrors(text, path);
      return compile(text, path, options);
    };
    return transformer;
  },
};

function refuseSyntaxErrors(text, path) {
  const { diagnostics } = ts.transpileModule(text, {
    fileName: path,
    reportDiagnostics: true,
    compilerOptions: { target: ts.ScriptTarget.ES2022 },
  });
  if (diagnostics.length === 0) return;
  const host = { getCanonicalFileName: (name) => name, getCurrentDirectory: () => __dirname, getNewLine: () => '\n' };
  throw new SyntaxError(ts.formatDiagnostics(diagnostics, host));
}
