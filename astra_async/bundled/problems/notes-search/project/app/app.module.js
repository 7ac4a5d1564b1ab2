(function () {
  'use strict';

  angular.module('notesApp', []);
})();
