(function () {
  'use strict';

  angular.module('notesApp').factory('notesService', notesService);

  notesService.$inject = ['$http'];

  function notesService($http) {
    return {
      /** Promises all notes in no order: `{ id, title, text, tags, pinned, updated }`, `updated` as ISO 8601. */
      load: function () {
        return $http.get('data/notes.json').then(function (response) {
          return response.data;
        });
      },
    };
  }
})();
