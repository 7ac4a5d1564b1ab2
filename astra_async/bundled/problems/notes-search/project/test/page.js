const fs = require('fs');
const path = require('path');

const ROOT = path.join(__dirname, '..');
const read = (name) => fs.readFileSync(path.join(ROOT, name), 'utf8');

/** Runs the scripts that index.html names, in its order, as a browser does: one that fails does not stop the others. */
function loadScripts(html) {
  for (const [, source] of html.matchAll(/<script\b[^>]*\bsrc="([^"]+)"/g)) {
    if (source.startsWith('node_modules/')) {
      require(source.slice('node_modules/'.length));
      continue;
    }
    try {
      window.eval(`${read(source)}\n//# sourceURL=${source}`);
    } catch (error) {
      console.error(`${source}: ${error.message}`);
    }
  }
}

function templates(folder = 'app') {
  return fs.readdirSync(path.join(ROOT, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return templates(name);
    return name.endsWith('.html') ? [name] : [];
  });
}

const page = new DOMParser().parseFromString(read('index.html'), 'text/html');
loadScripts(read('index.html').replace(/<!--[\s\S]*?-->/g, ''));
require('angular-mocks');

/** An injector for the app with AngularJS's own mocks of time and network. */
exports.createInjector = () => {
  const injector = angular.injector(['ng', 'ngMock', 'notesApp']);
  const cache = injector.get('$templateCache');
  for (const name of templates()) cache.put(name, read(name));
  return injector;
};

/** Compiles the body of index.html; returns its element. */
exports.openPage = (injector) => {
  document.body.innerHTML = page.body.innerHTML;
  for (const script of document.body.querySelectorAll('script')) script.remove();
  injector.invoke(['$compile', '$rootScope', ($compile, $rootScope) => {
    $compile(angular.element(document.body))($rootScope);
    $rootScope.$digest();
  }]);
  return document.body;
};
