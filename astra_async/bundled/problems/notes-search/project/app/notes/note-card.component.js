(function () {
  'use strict';

  angular.module('notesApp').component('noteCard', {
    bindings: { note: '<' },
    templateUrl: 'app/notes/note-card.html',
  });
})();
